import { ClientClosedError, ClientOfflineError, ErrorReply } from 'redis'
import type { Address, Command, Format, Reply } from './connection.ts'

/** One HTTP request that waits for Redis. */
export type Call = {
  /** Its deadline, in ms of `performance.now()`. */
  until: number
  /** True if the client has disconnected. Such a call sends no more commands. */
  isOver(): boolean
  /** The last command of this call that is sent again, by slot: commands of one slot run in their order. */
  readonly turns: Map<number, Promise<unknown>>
}

/** A command, to send it again. */
export type Sent = {
  command: Command
  format: Format
  /** True if an error reply comes from Redis, and not from the code of a script. */
  trusted: boolean
}

/** The Redis behind a database: one server, the master that sentinels name, or a cluster. */
export interface Backend {
  /** Resolves when commands can be sent. @throws RedisDown */
  ready(call: Call): Promise<void>
  /** Sends a command at once. Rejects with any error; pass the outcome to `again`, then to `settled`. */
  sendRaw(command: Command, format: Format): Promise<Reply>
  /**
   * Sends a command again if the outcome proves that it has not run. Returns `undefined` if it has run or may have run.
   * A command that may have run is never sent again.
   */
  again(sent: Sent, outcome: unknown, call: Call): Promise<Reply> | undefined
  /**
   * Runs MULTI, the commands and EXEC on one node.
   * @param scripts texts to load there first, if `load` is present
   * @returns the reply to EXEC first, then the other replies
   * @throws BadRequest if the keys are in different slots
   */
  transaction(commands: Command[], scripts: Buffer[], call: Call): Promise<Reply[]>
  /**
   * Loads a script on the node that has replied NOSCRIPT. Absent if there is one node: then the client has to send EVAL.
   * @returns false if the node had the script, so that the reply came from the script
   */
  load?(sent: Sent, text: Buffer): Promise<boolean>
  /** Loads a script on the node that will receive this command next, unless it has been loaded there. Absent if `load` is. */
  prepare?(command: Command, text: Buffer): void
  /**
   * Drops connections that do not respond, after a call has reached its deadline.
   * @param endsScripts the call has sent a script: the one that keeps Redis busy is ended, too
   */
  giveUp(endsScripts: boolean): void
  /** The nodes that run commands now. The first one also serves pub/sub. */
  addresses(): Address[]
  /** True if commands can be sent now. */
  isUp(): boolean
  close(): void
}

/** True if the command was not sent: the client of the package `redis` queues nothing while it is not connected. */
export function isNotSent(outcome: unknown): boolean {
  return outcome instanceof ClientOfflineError || outcome instanceof ClientClosedError
}

const REFUSED = /^(MOVED \d+ \S+$|ASK \d+ \S+$|TRYAGAIN |CLUSTERDOWN )/

/** True if a script has raised this error behind the guard, which annotates such errors with \x01. The script has run. */
export function isRaised({ message }: ErrorReply): boolean {
  return message.includes('\x01')
}

/** True if a cluster has not run the command: it was not sent, or a node refused it without looking at it. */
export function isUnserved(outcome: unknown): boolean {
  if (outcome instanceof ErrorReply) return REFUSED.test(outcome.message) && !isRaised(outcome)
  return isNotSent(outcome)
}

/** True for commands that run code, which may reply with any text. */
export function runsCode(command: Command): boolean {
  return /^(eval|fcall)/i.test(String(command[0]))
}
