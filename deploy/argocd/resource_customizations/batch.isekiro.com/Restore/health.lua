-- By observedGeneration and condition Restored, which is Unknown as long as the Restore may still begin or go on: docs/gitops.md.
if obj.status == nil or obj.status.observedGeneration == nil then
  return {status = "Progressing", message = "No operator has seen it yet"}
end
if obj.status.observedGeneration ~= obj.metadata.generation then
  return {status = "Progressing", message = "The operator has not seen the newest edit yet"}
end
local health = {True = "Healthy", False = "Degraded", Unknown = "Progressing"}
for _, condition in ipairs(obj.status.conditions or {}) do
  if condition.type == "Restored" then
    local said = condition.reason
    if obj.status.message ~= nil and obj.status.message ~= "" then
      said = said .. ": " .. obj.status.message
    end
    return {status = health[condition.status], message = said}
  end
end
return {status = "Progressing", message = "The operator has not said how it is yet"}
