import { delimiter } from 'node:path'
import { findFile, type ServerBinary, versionIfAny } from './binary.ts'
import { cached, type Packages } from './debian.ts'

/** A server program and the places to search for its binary. */
export type ServerKind = Packages & {
  /** Environment variables that may contain the path of the binary. */
  variables: string[]
  /** File names to search for. `argv0` is the name to call the binary by, if it differs. */
  names: { name: string; argv0?: string }[]
  /** Folders to search after those of PATH. */
  folders?: string[]
  /** Installation instructions for the error message. */
  install: string
}

/**
 * Finds the binary of a server. Searches the environment variables, then PATH, then the project's cache, which is filled
 * from the distribution's packages on Debian and Ubuntu.
 *
 * @throws Error with installation instructions.
 */
export async function findServer(
  { variables, names, folders = [], install, ...packages }: ServerKind,
  log: (line: string) => void = () => {},
): Promise<ServerBinary> {
  const { title, versionOf } = packages
  for (const variable of variables) {
    const file = process.env[variable]
    if (!file) continue
    const binary = { file, argv0: file, env: {} }
    const version = versionIfAny(versionOf, binary)
    if (!version)
      throw new Error(
        `${variable}=${file} is not a ${title} server, or does not run on this machine`,
      )
    return { ...binary, source: `${version} from ${variable}` }
  }
  const searched = [...(process.env.PATH ?? '').split(delimiter), ...folders]
  for (const { name, argv0 } of names) {
    const file = await findFile(name, searched)
    if (!file) continue
    const binary = { file, argv0: argv0 ?? file, env: {} }
    const version = versionIfAny(versionOf, binary)
    if (version) return { ...binary, source: `${version} from PATH` }
  }
  const none = `${title} is not installed and could not be downloaded. To install it:\n${install}`
  const found = await cached(packages, log).catch((cause: Error) => {
    throw new Error(`${none}\n(${cause.message.trim().split('\n').at(-1)})`, { cause })
  })
  if (!found) throw new Error(none)
  return found
}
