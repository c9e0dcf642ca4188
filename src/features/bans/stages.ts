import { isUsed } from '../../core/config/feature.ts'
import { check, isName, isWhole } from '../../core/connection/upstash/arguments.ts'
import type { ScriptPart } from '../../core/connection/upstash/part.ts'
import { penalty as text } from '../../core/connection/upstash/script-text.ts'
import type { Feature } from '../../core/feature.ts'
import { listsBans, withBanList } from './watch.ts'

const BAN = /^!(\d{1,16})$/

/** Penalties: each follows its limit, and the rests of the bans follow the states. */
export const penalties: ScriptPart = {
  text,
  penalty: {
    write(request, { tag, after, withinMs, banMs: usualMs, maxMs }, place) {
      const banMs = (request.mode === 'ban' ? request.banMs : undefined) ?? usualMs
      check(isName(tag), place, 'tag of a penalty')
      check(isWhole(after, 1), place, 'after')
      check(isWhole(withinMs, 1), place, 'withinMs')
      check(isWhole(maxMs, 1), place, 'maxMs')
      check(isWhole(banMs, 1) && (request.mode !== 'ban' || banMs <= maxMs), place, 'banMs')
      return `;${tag}:penalty,${after},${withinMs},${banMs},${maxMs}`
    },
    // A ban refuses the limit, and the longer wait applies.
    read(part, state) {
      const bannedForMs = Number(BAN.exec(part)?.[1])
      if (!Number.isSafeInteger(bannedForMs)) return undefined
      if (bannedForMs === 0) return state
      const { retryAfterMs } = state
      const wait = retryAfterMs === null ? null : Math.max(retryAfterMs, bannedForMs)
      return { ...state, allowed: false, retryAfterMs: wait, bannedForMs }
    },
  },
}

export const compile: Feature['compile'] = ({ config, log }) => {
  if (!isUsed(config, ({ penalty }) => penalty)) return {}
  return {
    lua: [penalties],
    ...(listsBans(config) && {
      watch: (inner, database) => withBanList(inner, database, config, log),
    }),
  }
}
