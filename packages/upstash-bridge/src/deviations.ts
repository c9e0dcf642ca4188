import { ErrorReply } from 'redis'
import type { Command, Format, Reply } from './connection.ts'
import type { Translated } from './translated.ts'

/** Translates commands to which Upstash replies differently from Redis. @returns `undefined` for other commands */
export function deviation(name: string, command: Command): Translated | undefined {
  if (name === 'acl' && /^whoami$/i.test(String(command[1]))) {
    return { command: ['ECHO', 'default'], read: (reply) => ({ reply, inner: 0 }) }
  }
  if (name === 'copy') return { command, read: copied }
  if (name === 'xreadgroup') return withoutNewConsumers(command)
}

/** COPY of a key onto itself is an error in Redis, and 0 at Upstash. */
function copied(reply: Reply, format: Format) {
  const isSame = reply instanceof ErrorReply && /are the same$/.test(reply.message)
  return { reply: isSame ? (format === 'json' ? '0' : 0) : reply, inner: 0 }
}

/** Runs XREADGROUP, and deletes the consumers that it has created. ARGV: the group, the consumer, the command. */
const READ_GROUP = `local group, consumer, known = ARGV[1], ARGV[2], {}
for index, key in ipairs(KEYS) do
  local all = redis.pcall('XINFO', 'CONSUMERS', key, group)
  for _, one in ipairs(all) do known[index] = known[index] or one[2] == consumer end
end
local reply = redis.pcall(unpack(ARGV, 3))
for index, key in ipairs(KEYS) do
  if not known[index] then redis.pcall('XGROUP', 'DELCONSUMER', key, group, consumer) end
end
return reply`

/** XREADGROUP with NOACK creates a consumer in Redis, and none at Upstash. */
function withoutNewConsumers(command: Command): Translated | undefined {
  let [group, consumer, noAck]: [Command[0]?, Command[0]?, boolean?] = []
  for (let index = 1; index < command.length; index++) {
    const option = String(command[index]).toLowerCase()
    if (option === 'group') [group, consumer] = [command[++index], command[++index]]
    else if (option === 'noack') noAck = true
    else if (option === 'streams') {
      const names = command.slice(index + 1)
      if (!noAck || group === undefined || consumer === undefined || names.length % 2 > 0) return
      const keys = names.slice(0, names.length / 2)
      const args = [`${keys.length}`, ...keys, group, consumer, ...command]
      const read = (reply: Reply) => ({ reply, inner: 0 })
      return { command: ['EVAL', READ_GROUP, ...args], read, guarded: true }
    } else index++ // COUNT and its number
  }
}
