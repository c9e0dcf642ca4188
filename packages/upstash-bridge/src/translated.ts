import { ErrorReply } from 'redis'
import type { Command, Reply } from './connection.ts'

/** A command as Redis is to get it, and how to read what Redis says. */
export type Translated = {
  command: Command
  read(reply: Reply): Counted
  /** The same with the code as it was written, should the guarded form not compile. */
  unguarded?: () => Translated | undefined
}

/** What the client gets, and how many commands ran inside. */
export type Counted = { reply: Reply; inner: number }

/**
 * Undoes what a guard did to a reply: [commands inside, result], or an error with a note on it.
 *
 * @param name what the client calls it: a script by its SHA-1, a function by its name
 * @param onlyLine the line to name where the note has none
 */
export function openReply(reply: Reply, name: string, onlyLine: string): Counted {
  if (Array.isArray(reply)) return { reply: reply[1] ?? null, inner: Number(reply[0]) }
  if (!(reply instanceof ErrorReply)) return { reply, inner: 0 }
  const [, told, count, noted, kind] = NOTED.exec(reply.message) ?? []
  if (told === undefined) return { reply, inner: 0 }
  const line = noted || /user_(?:script|function):(\d+):/.exec(told)?.[1] || onlyLine
  const where = line ? `, on @${kind}:${line}.` : ''
  return { reply: new ErrorReply(`${told} script: ${name}${where}`), inner: Number(count) }
}

// biome-ignore lint/suspicious/noControlCharactersInRegex: chosen because no message has one
const NOTED = /^(.*)\x01(\d+)\x01(\d*)\x01.* on @(\w+):\d+\.$/s
