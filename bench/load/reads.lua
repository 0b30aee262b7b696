-- Reads for wrk: any cluster, or a list. Arguments: the number of clusters, a seed, the query of a list (none: one
-- cluster; @TEAM@ stands for any team in it), and the content encoding that is asked for, if any.

local here = debug.getinfo(1, "S").source:match("^@(.*/)")
local fleet = dofile(here .. "fleet.lua")

local HEAD = " HTTP/1.1\r\nHost: bench\r\n"
local TEAM = 100 -- as in `fleet.py`

local clusters, query, head

function init(args)
  clusters, query = tonumber(args[1]), args[3]
  local wish = args[4] and "Accept-Encoding: " .. args[4] .. "\r\n" or ""
  head = HEAD .. wish .. "\r\n"
  math.randomseed(tonumber(args[2]))
end

function request()
  if query ~= "" then
    local asked = query:gsub("@TEAM@", math.random(math.ceil(clusters / TEAM)) - 1)
    return "GET " .. fleet.BASE .. "?" .. asked .. head
  end
  return "GET " .. fleet.any(clusters) .. head
end

function done(summary, latency)
  fleet.print_figures(summary, latency)
end
