-- Posts reports that differ in their ids alone: wrk -s load.lua URL -- DEFINITION CODES LENGTH
-- Without arguments it gets the URL. Prints one JSON line with the figures.
local alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"
local urandom = io.open("/dev/urandom", "rb")
local threads = {}

function setup(thread)
   table.insert(threads, thread)
end

-- 126 random bits and two that are zero: 21 letters of six bits, and A for the rest.
local function fresh_id()
   local octets = urandom:read(21)
   local letters = {}
   for i = 1, 21 do
      local at = octets:byte(i) % 64 + 1
      letters[i] = alphabet:sub(at, at)
   end
   return table.concat(letters) .. "A"
end

function init(arguments)
   statuses = ""
   counted = {}
   if #arguments == 0 then return end
   local definition, codes, length = arguments[1], arguments[2], tonumber(arguments[3])
   start = '{"definition":"' .. definition .. '","report_id":"'
   rest = '","stratum":"","codes":[' .. codes .. '],"invitation":"","pad":"'
   rest = rest .. string.rep(".", length - #start - 22 - #rest - 2) .. '"}'
   wrk.method = "POST"
   wrk.headers["Content-Type"] = "application/json"
end

function request()
   if not start then return wrk.format() end
   return wrk.format(nil, nil, nil, start .. fresh_id() .. rest)
end

function response(status)
   counted[status] = (counted[status] or 0) + 1
   local parts = {}
   for code, n in pairs(counted) do parts[#parts + 1] = code .. "=" .. n end
   statuses = table.concat(parts, ",")
end

function done(summary, latency, requests)
   local total = {}
   for _, thread in ipairs(threads) do
      for code, n in thread:get("statuses"):gmatch("(%d+)=(%d+)") do
         total[code] = (total[code] or 0) + tonumber(n)
      end
   end
   -- The slowest hundredth of those that were taken, were all refusals quicker than they.
   local taken, all = 0, 0
   for code, n in pairs(total) do
      all = all + n
      if tonumber(code) < 300 then taken = taken + n end
   end
   local slow = all > 0 and 100 - taken / all or 99
   local parts = {}
   for code, n in pairs(total) do parts[#parts + 1] = string.format('"%s": %d', code, n) end
   local errors = summary.errors
   print(string.format(
      '{"per_second": %.1f, "median_ms": %.3f, "p99_ms": %.3f, "p99_taken_ms": %.3f, "dropped": %d, "statuses": {%s}}',
      summary.requests / summary.duration * 1e6, latency:percentile(50) / 1000,
      latency:percentile(99) / 1000, latency:percentile(slow) / 1000, errors.connect + errors.read + errors.write + errors.timeout,
      table.concat(parts, ", ")))
end
