-- Post reports that differ only in their ids: wrk -s load.lua URL -- DEFINITION CODES LENGTH
-- Without arguments, send GET requests to the URL. Print the figures as one line of JSON.
local alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"
local urandom = io.open("/dev/urandom", "rb")
local threads = {}

function setup(thread)
   table.insert(threads, thread)
end

-- An id has 128 bits: 21 letters of six random bits, then A for two zero bits.
local function fresh_id()
   local octets = urandom:read(21)
   local letters = {}
   for i = 1, 21 do
      local place = octets:byte(i) % 64 + 1
      letters[i] = alphabet:sub(place, place)
   end
   return table.concat(letters) .. "A"
end

function init(arguments)
   statuses = ""
   counts = {}
   if #arguments == 0 then return end
   local definition, codes, length = arguments[1], arguments[2], tonumber(arguments[3])
   prefix = '{"definition":"' .. definition .. '","report_id":"'
   suffix = '","stratum":"","codes":[' .. codes .. '],"invitation":"","pad":"'
   suffix = suffix .. string.rep(".", length - #prefix - 22 - #suffix - 2) .. '"}'
   wrk.method = "POST"
   wrk.headers["Content-Type"] = "application/json"
end

function request()
   if not prefix then return wrk.format() end
   return wrk.format(nil, nil, nil, prefix .. fresh_id() .. suffix)
end

function response(status)
   counts[status] = (counts[status] or 0) + 1
   local parts = {}
   for code, n in pairs(counts) do parts[#parts + 1] = code .. "=" .. n end
   statuses = table.concat(parts, ",")
end

function done(summary, latency, requests)
   local total = {}
   for _, thread in ipairs(threads) do
      for code, n in thread:get("statuses"):gmatch("(%d+)=(%d+)") do
         total[code] = (total[code] or 0) + tonumber(n)
      end
   end
   -- The p99 of accepted reports, as if every rejection had been faster than every acceptance.
   local accepted, all = 0, 0
   for code, n in pairs(total) do
      all = all + n
      if tonumber(code) < 300 then accepted = accepted + n end
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
