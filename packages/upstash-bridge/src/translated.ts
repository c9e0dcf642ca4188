import { ErrorReply } from 'redis'
import type { Command, Format, Reply } from './connection.ts'

/** A translated command for Redis, and how to read the reply. */
export type Translated = {
  command: Command
  read(reply: Reply, format: Format): Counted
  /** Returns the translation without a guard, for code that does not compile with it. */
  unguarded?: () => Translated | undefined
  /** True behind a guard. Then an error reply without a \1 comes from Redis, and not from the code of the script. */
  guarded?: boolean
  /** The text of the script that an EVALSHA names. */
  text?: Buffer | undefined
}

/** The reply for the client, and the number of commands that ran inside the script or function. */
export type Counted = { reply: Reply; inner: number }

/**
 * Unwraps the reply of a guard: [inner commands, result], or an annotated error.
 *
 * @param name the SHA-1 of the client's script, or the name of the function
 * @param onlyLine the line to report if the annotation has none
 */
export function openReply(reply: Reply, name: string, onlyLine: string): Counted {
  if (Array.isArray(reply)) return { reply: reply[1] ?? null, inner: Number(reply[0]) }
  if (!(reply instanceof ErrorReply)) return { reply, inner: 0 }
  // The annotation is last: the message of a script may contain \x01, too.
  const parts = reply.message.split('\x01')
  const [count = '', notedLine, end = ''] = parts.splice(-3)
  const [, kind] = / on @(\w+):\d+\.$/.exec(end) ?? []
  if (parts.length === 0 || !/^\d+$/.test(count) || !kind) return { reply, inner: 0 }
  const message = parts.join('\x01')
  const line = notedLine || /user_(?:script|function):(\d+):/.exec(message)?.[1] || onlyLine
  const where = line ? `, on @${kind}:${line}.` : ''
  return { reply: new ErrorReply(`${message} script: ${name}${where}`), inner: Number(count) }
}
