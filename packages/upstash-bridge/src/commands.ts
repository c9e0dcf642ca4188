import type { Command } from './connection.ts'

/**
 * Commands that Upstash refuses over REST: commands that block, that depend on the state of a connection, that
 * leave the database, or that administer the server. Source: the compatibility table of Upstash's REST API documentation.
 */
const REFUSED = new Set(
  `auth client hello quit reset select readonly readwrite asking
   multi exec discard watch unwatch
   blpop brpop brpoplpush blmove blmpop bzpopmin bzpopmax bzmpop wait waitaof
   subscribe psubscribe ssubscribe unsubscribe punsubscribe sunsubscribe monitor
   cluster commandlog config debug failover latency migrate module move pfdebug pfselftest psync replconf replicaof
   restore-asking role save bgsave bgrewriteaof lastsave shutdown slaveof slowlog swapdb sync`
    .trim()
    .split(/\s+/),
)

/** The lower-case name of a command. */
export function nameOf(command: Command): string {
  return String(command[0]).toLowerCase()
}

/** Commands that need special handling: refused commands, commands that may block, deviations, scripts and functions. */
const SPECIAL = new Set(
  [...REFUSED, 'acl', 'copy', 'xread', 'xreadgroup', 'script', 'function'].concat(
    'eval',
    'eval_ro',
    'evalsha',
    'evalsha_ro',
    'fcall',
    'fcall_ro',
  ),
)

/** Cache of `isPlain` by the name as the client wrote it, so that a usual command costs one lookup. */
const plainByName = new Map<string, boolean>()

/** True if the bridge forwards the command and its reply unchanged. */
export function isPlain(command: Command): boolean {
  const name = String(command[0])
  const known = plainByName.get(name)
  if (known !== undefined) return known
  const plain = !SPECIAL.has(name.toLowerCase())
  if (plainByName.size < 1000 && name.length < 32) plainByName.set(name, plain)
  return plain
}

/** The error with which Upstash refuses this command over REST; `undefined` if it accepts the command. */
export function refusal(command: Command): string | undefined {
  const name = nameOf(command)
  if (isSetInfo(command)) return
  if (REFUSED.has(name)) return unavailable(name)
  if (name === 'script' && /^debug$/i.test(String(command[1]))) return unavailable('script debug')
  if (name === 'acl' && !/^(cat|genpass|whoami)$/i.test(String(command[1])))
    return unavailable(name)
  if ((name === 'xread' || name === 'xreadgroup') && blocks(command)) {
    return `ERR ${name.toUpperCase()} with BLOCK is not supported over REST`
  }
}

/** True for `CLIENT SETINFO`, which Upstash accepts and which has no effect without a connection. */
export function isSetInfo(command: Command): boolean {
  return nameOf(command) === 'client' && /^setinfo$/i.test(String(command[1]))
}

/** Upstash's message for a command that it does not support. */
export function unavailable(name: string): string {
  return `ERR Command is not available: '${name.toUpperCase()}'. See https://upstash.com/docs/redis/overall/rediscompatibility for details`
}

/** Replaces Redis's "unknown command" and Valkey's NOSCRIPT with Upstash's messages. Other errors stay unchanged. */
export function inTheirWords(message: string): string {
  if (message.startsWith('NOSCRIPT ')) return 'NOSCRIPT No matching script. Please use EVAL.'
  return message.replace(/\bERR unknown command '([^']*)'.*/s, (_, name) => unavailable(name))
}

function blocks(command: Command): boolean {
  for (let index = 1; index < command.length; index++) {
    const option = String(command[index]).toLowerCase()
    if (option === 'streams') return false // keys and ids follow
    if (option === 'block') return true
    if (option === 'group') index += 2 // the names of the group and the consumer
  }
  return false
}
