-- By condition Reachable, which the newest run or probe that used it has set.
for _, one in ipairs((obj.status or {}).conditions or {}) do
  if one.type == "Reachable" and one.status == "False" then
    if one.message == nil or one.message == "" then
      return {status = "Degraded", message = one.reason}
    end
    return {status = "Degraded", message = one.reason .. ": " .. one.message}
  end
  if one.type == "Reachable" and one.status == "True" then
    return {status = "Healthy", message = one.reason}
  end
end
return {status = "Healthy", message = "No run has used it yet"}
