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

function blocks(command: Command): boolean {
  for (const argument of command) {
    if (/^streams$/i.test(String(argument))) return false // from here on they are keys and ids
    if (/^block$/i.test(String(argument))) return true
  }
  return false
}
