import type { Command } from './connection.ts'

/**
 * What Upstash refuses over REST: connections and their state do not exist there, nothing blocks, and
 * the server is not ours to administer. (docs: REST API, compatibility table; the wording is theirs.)
 */
const REFUSED = new Set(
  `auth client hello quit reset select readonly readwrite asking
   multi exec discard watch unwatch
   blpop brpop brpoplpush blmove blmpop bzpopmin bzpopmax bzmpop wait waitaof
   subscribe psubscribe ssubscribe unsubscribe punsubscribe sunsubscribe monitor
   cluster config debug failover latency module pfdebug pfselftest psync replconf replicaof
   restore-asking role save bgsave bgrewriteaof lastsave shutdown slaveof slowlog sync migrate`
    .trim()
    .split(/\s+/),
)

/** The lower-case name of a command. */
export function nameOf(command: Command): string {
  return String(command[0]).toLowerCase()
}

/** Commands that may need more than being passed on: refused ones, blocking ones, scripts. */
const SPECIAL = new Set(
  [...REFUSED, 'xread', 'xreadgroup', 'script', 'function'].concat(
    'eval',
    'eval_ro',
    'evalsha',
    'evalsha_ro',
    'fcall',
    'fcall_ro',
  ),
)

/** Names as clients spell them, so that the usual command costs one look-up. */
const spelled = new Map<string, boolean>()

/** Whether a command goes to Redis as it is, and its reply to the client. */
export function isPlain(command: Command): boolean {
  const name = String(command[0])
  const known = spelled.get(name)
  if (known !== undefined) return known
  const plain = !SPECIAL.has(name.toLowerCase())
  if (spelled.size < 1000 && name.length < 32) spelled.set(name, plain)
  return plain
}

/** Why Upstash would not run this command over REST, or `undefined` when it would. */
export function refusal(command: Command): string | undefined {
  const name = nameOf(command)
  if (isSetInfo(command)) return
  if (REFUSED.has(name)) return unavailable(name)
  if (name === 'script' && /^debug$/i.test(String(command[1]))) return unavailable('script debug')
  if ((name === 'xread' || name === 'xreadgroup') && blocks(command)) {
    return `ERR ${name.toUpperCase()} with BLOCK is not supported over REST`
  }
}

/** `CLIENT SETINFO`, which Upstash accepts and which has no meaning without a connection. */
export function isSetInfo(command: Command): boolean {
  return nameOf(command) === 'client' && /^setinfo$/i.test(String(command[1]))
}

/** Upstash's own words for a command that it does not have. */
export function unavailable(name: string): string {
  return `ERR Command is not available: '${name.toUpperCase()}'. See https://upstash.com/docs/redis/overall/rediscompatibility for details`
}

/** Redis's "unknown command" in the words of Upstash; any other error is Redis's own. */
export function inTheirWords(message: string): string {
  return message.replace(/\bERR unknown command '([^']*)'.*/s, (_, name) => unavailable(name))
}

function blocks(command: Command): boolean {
  for (const argument of command) {
    if (/^streams$/i.test(String(argument))) return false // from here on they are keys and ids
    if (/^block$/i.test(String(argument))) return true
  }
  return false
}
