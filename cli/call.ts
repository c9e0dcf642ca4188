/** How a command was called. */
export interface Call {
  /** How the user calls the command: `npx sluice dev`. */
  title: string
  /** The file of this program. */
  file: string
  /** Prints a mistake on the command line and sets the exit code. */
  onUsageError(message: string): void
}

/** A command of `sluice`. */
export interface Command {
  name: string
  about: string
  run(args: string[], call: Call): Promise<unknown>
}
