-- By observedGeneration and condition Ready, the operator's verdict: docs/gitops.md.
if obj.status == nil or obj.status.observedGeneration == nil then
  return {status = "Progressing", message = "No operator has seen it yet"}
end
if obj.status.observedGeneration ~= obj.metadata.generation then
  return {status = "Progressing", message = "The operator has not seen the newest edit yet"}
end
for _, condition in ipairs(obj.status.conditions or {}) do
  if condition.type == "Ready" then
    local said = condition.reason
    if condition.message ~= nil and condition.message ~= "" then
      said = condition.message
    end
    if condition.status ~= "True" then
      -- A run that waits for its pod may yet go on by itself.
      if condition.reason == "RunPending" then
        return {status = "Progressing", message = said}
      end
      return {status = "Degraded", message = said}
    end
    -- Healthy, as Argo CD has a suspended CronJob: Suspended would hold up the sync of what comes after it.
    if condition.reason == "Suspended" then
      return {status = "Healthy", message = "Suspended: no run is started"}
    end
    if (obj.status.activeCount or 0) > 0 then
      return {status = "Healthy", message = "A run is active"}
    end
    return {status = "Healthy", message = said}
  end
end
return {status = "Progressing", message = "The operator has not said how it is yet"}
