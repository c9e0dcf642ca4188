/** Runs a script on given records and a given clock, and reports its reply and every command that it calls. */
import type { ScriptCall } from '../../src/core/connection/upstash/script.ts'
import type { Case } from './compiled-cases.ts'
import type { Server } from './server.ts'

/** What a script did. */
export interface Ran {
  /** The reply, `declined`, or `failed` with an error of Lua. */
  reply: string
  /** The commands, with their arguments. */
  commands: string[]
}

/** A script whose commands are reported, and whose `TIME` is the last argument. */
const reporting = (text: string) => `local real, log = redis, {}
local clock = table.remove(ARGV)
local redis = { error_reply = real.error_reply, call = function(...)
  log[#log + 1] = table.concat({ ... }, ' ')
  if ... == 'TIME' then return { string.sub(clock, 1, -4), string.sub(clock, -3) .. '999' } end
  return real.call(...)
end }
local function script()
${text.replace(/^#!lua[^\n]*\n/, '')}
end
local ok, reply = pcall(script)
if not ok then reply = 'failed' elseif type(reply) == 'table' then reply = reply.err end
return { reply, unpack(log) }`

/** Loads a script. @returns a function that runs it on the records of a case */
export async function runnerOf(server: Server, text: string) {
  const sha = String(await server.send('SCRIPT', 'LOAD', reporting(text)))
  return async ({ records, clock }: Case, { keys, args }: ScriptCall): Promise<Ran> => {
    const written = keys.map((key, index) => {
      const record = records[index]!
      return record === null
        ? server.send('DEL', key)
        : server.send('SET', key, record, 'PX', '99999')
    })
    const sent = server.send(
      ...['EVALSHA', sha, `${keys.length}`, ...keys, ...args],
      `${clock}`.padStart(4, '0'),
    )
    const [reply, ...commands] = (await sent) as string[]
    await Promise.all(written)
    return { reply: reply!, commands }
  }
}
