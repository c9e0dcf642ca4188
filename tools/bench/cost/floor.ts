import type { Contender } from './contender.ts'
import { LIMIT, WINDOW_MS } from './contender.ts'

/** The units that a record has, with the clock of Redis: no limiter with exact waits does less. */
const script = `
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local record = redis.call('GET', KEYS[1])
local used = (record or 0) + ARGV[1]
if used > ${LIMIT} then
  return now
end
if record then
  redis.call('SET', KEYS[1], used, 'KEEPTTL')
else
  redis.call('SET', KEYS[1], used, 'PX', ${WINDOW_MS})
end
return 0
`

/** The script that does the least. */
export const floor: Contender = {
  by: 'Floor',
  algorithm: 'one record',
  decisions: 1,
  async ask(send, { client, units = 1, peek }) {
    const args = [String(peek ? 0 : units)]
    return (await send({ script, keys: [`floor:{${client}}`], args })) === 0
  },
}
