-- What the scripts for wrk share: ids of clusters as `fleet.py` makes them, and the figures at the end.

local fleet = {}

fleet.BASE = "/api/hyperfleet/v1/clusters"

-- Return the path of any cluster.
function fleet.any(clusters)
  return string.format("%s/cls-%020d", fleet.BASE, math.random(clusters) - 1)
end

-- Print the figures for `wrk.py` to read: one line of JSON. Times are microseconds.
function fleet.print_figures(summary, latency)
  local failed = summary.errors
  print(string.format(
    '{"requests": %d, "duration": %d, "p50": %d, "p99": %d, "refused": %d, "broken": %d}',
    summary.requests, summary.duration, latency:percentile(50), latency:percentile(99), failed.status,
    failed.connect + failed.read + failed.write + failed.timeout
  ))
end

return fleet
