-- Post reports that differ only in their ids: wrk -s load.lua URL -- DEFINITION CODES LENGTH
-- Print the figures as one line of JSON.
local alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"
local threads = {}

-- All pairs of letters: the generator shares the cores with the server, so ids must be cheap.
local pairs_of_letters = {}
for i = 1, 64 do
   for j = 1, 64 do
      pairs_of_letters[#pairs_of_letters + 1] = alphabet:sub(i, i) .. alphabet:sub(j, j)
   end
end

function setup(thread)
   table.insert(threads, thread)
end

-- An id has 128 bits: 21 letters of six random bits, then A for two zero bits.
local function fresh_id()
   local parts = {}
   for i = 1, 10 do parts[i] = pairs_of_letters[math.random(4096)] end
   local place = math.random(64)
   return table.concat(parts) .. alphabet:sub(place, place) .. "A"
end

function init(arguments)
   counts = {}
   -- Each thread has a seed from the system, so that no two threads or rounds send the same ids.
   local octets = io.open("/dev/urandom", "rb"):read(6)
   local seed = 0
   for i = 1, 6 do seed = seed * 256 + octets:byte(i) end
   math.randomseed(seed)
   local definition, codes, length = arguments[1], arguments[2], tonumber(arguments[3])
   prefix = '{"definition":"' .. definition .. '","report_id":"'
   suffix = '","stratum":"","codes":[' .. codes .. '],"invitation":"","pad":"'
   suffix = suffix .. string.rep(".", length - #prefix - 22 - #suffix - 2) .. '"}'
   wrk.method = "POST"
   wrk.headers["Content-Type"] = "application/json"
end

function request()
   return wrk.format(nil, nil, nil, prefix .. fresh_id() .. suffix)
end

function response(status)
   counts[status] = (counts[status] or 0) + 1
end

function done(summary, latency, requests)
   local total = {}
   for _, thread in ipairs(threads) do
      for code, n in pairs(thread:get("counts")) do total[code] = (total[code] or 0) + n end
   end
   -- The p99 of accepted reports, as if every rejection had been faster than every acceptance.
   local accepted, all = 0, 0
   for code, n in pairs(total) do
      all = all + n
      if code < 300 then accepted = accepted + n end
   end
   local percentile = all > 0 and 100 - accepted / all or 99
   local parts = {}
   for code, n in pairs(total) do parts[#parts + 1] = string.format('"%s": %d', code, n) end
   local errors = summary.errors
   print(string.format(
      '{"per_second": %.1f, "median_ms": %.3f, "p99_ms": %.3f, "p99_accepted_ms": %.3f, "dropped": %d, "statuses": {%s}}',
      summary.requests / summary.duration * 1e6, latency:percentile(50) / 1000,
      latency:percentile(99) / 1000, latency:percentile(percentile) / 1000, errors.connect + errors.read + errors.write + errors.timeout,
      table.concat(parts, ", ")))
end
