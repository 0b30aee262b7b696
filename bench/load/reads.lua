-- Reads for wrk: any cluster, or a list. Arguments: the number of clusters, a seed, the query of a list (none: one
-- cluster; @TEAM@ stands for any team in it), the content encoding that is asked for (or ""), and a prefix of paths.

local here = debug.getinfo(1, "S").source:match("^@(.*/)")
local fleet = dofile(here .. "fleet.lua")

local HEAD = " HTTP/1.1\r\nHost: bench\r\n"
local TEAM = 100 -- as in `fleet.py`

local clusters, query, head, prefix

function init(args)
  clusters, query = tonumber(args[1]), args[3]
  local encoding = args[4] and args[4] ~= "" and "Accept-Encoding: " .. args[4] .. "\r\n" or ""
  head, prefix = HEAD .. encoding .. "\r\n", args[5] or ""
  math.randomseed(tonumber(args[2]))
end

function request()
  if query ~= "" then
    local asked = query:gsub("@TEAM@", math.random(math.ceil(clusters / TEAM)) - 1)
    return "GET " .. fleet.BASE .. "?" .. asked .. head
  end
  return "GET " .. prefix .. fleet.any(clusters) .. head
end

function done(summary, latency)
  fleet.print_figures(summary, latency)
end
