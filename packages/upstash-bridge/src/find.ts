import { delimiter } from 'node:path'
import { findFile, type ServerBinary, versionIfAny } from './binary.ts'
import { cached, type Packages } from './debian.ts'

/** A server and the places where its binary may be. */
export type ServerKind = Packages & {
  /** Environment variables that may name the binary. */
  variables: string[]
  /** File names to search for, each with the name that the binary must be called by if that differs. */
  names: { name: string; argv0?: string }[]
  /** Folders to search after those of PATH. */
  folders?: string[]
  /** How to install one: the last lines of the error. */
  install: string
}

/**
 * Finds a server's binary: the one that a variable names, then PATH, then the project's cache, which is filled from the distribution's
 * packages on Debian and Ubuntu.
 *
 * @throws Error that says how to install one.
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
    if (!version) throw new Error(`${variable}=${file} is not a ${title} server that runs here`)
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
  const none = `Found no ${title}, and could not fetch one. Install it:\n${install}`
  const found = await cached(packages, log).catch((cause: Error) => {
    throw new Error(`${none}\n(${cause.message.trim().split('\n').at(-1)})`, { cause })
  })
  if (!found) throw new Error(none)
  return found
}
