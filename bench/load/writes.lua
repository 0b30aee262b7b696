-- Reports for wrk: of any adapter on any cluster, in turn by POST and by PUT.
-- Arguments: the number of clusters, a seed, the file with `report_templates`, "settled" or "moving", and "compat" if
-- they are for /compat.

local here = debug.getinfo(1, "S").source:match("^@(.*/)")
local fleet = dofile(here .. "fleet.lua")

local HEADERS = "Host: bench\r\nContent-Type: application/json\r\n"
local ZEROS = "00000000"

local clusters, is_moving, is_compat
local adapters = {}
local count = 0

-- Cut a body in two where its counter is, with the end of the head before it.
local function cut(body)
  local before, after = body:match("^(.-)@@@@@@@@(.*)$")
  return { string.format(" HTTP/1.1\r\n%sContent-Length: %d\r\n\r\n%s", HEADERS, #body, before), after }
end

function init(args)
  clusters, is_moving, is_compat = tonumber(args[1]), args[4] == "moving", args[5] == "compat"
  math.randomseed(tonumber(args[2]))
  for line in io.lines(args[3]) do
    local name, good, bad = line:match("^(.-)\t(.-)\t(.*)$")
    table.insert(adapters, { name = name, good = cut(good), bad = cut(bad) })
  end
end

function request()
  count = count + 1
  local adapter = adapters[math.random(#adapters)]
  local body, number = adapter.good, ZEROS
  if is_moving then
    number = string.format("%08d", math.random(99999999))
    -- One in twenty is bad: then one in ten differs in that from the one before it.
    if count % 20 == 0 then body = adapter.bad end
  end
  local cluster = fleet.any(clusters)
  if is_compat then
    return "PUT /compat" .. cluster .. "/statuses" .. body[1] .. number .. body[2]
  end
  if count % 2 == 0 then
    return "POST " .. cluster .. "/statuses" .. body[1] .. number .. body[2]
  end
  return "PUT " .. cluster .. "/statuses/adapters/" .. adapter.name .. body[1] .. number .. body[2]
end

function done(summary, latency)
  fleet.print_figures(summary, latency)
end
