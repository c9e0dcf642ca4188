import { delimiter } from 'node:path'
import {
  onPath,
  type ServerBinary,
  versionIfAny,
} from '../../packages/upstash-bridge/src/binary.ts'
import { cached } from '../../packages/upstash-bridge/src/debian.ts'
import { PROXIES, type ProxyName } from './binaries.ts'

/**
 * Finds the binary of a proxy: `NGINX_BIN` or `CADDY_BIN`, then PATH and /usr/sbin, then the project's
 * cache, which is filled from the distribution's packages on Debian and Ubuntu.
 *
 * @throws Error that says how to install one.
 */
export async function findProxy(
  name: ProxyName,
  log: (line: string) => void = () => {},
): Promise<ServerBinary> {
  const { variable, ...packages } = PROXIES[name]
  const given = process.env[variable]
  if (given) {
    const binary = { file: given, argv0: given, env: {} }
    const version = versionIfAny(packages.versionOf, binary)
    if (!version) throw new Error(`${variable}=${given} is no ${packages.title} that serves here`)
    return { ...binary, source: `${version} from ${variable}` }
  }
  // A user's PATH lacks the folder where nginx lives.
  const folders = [...(process.env.PATH ?? '').split(delimiter), '/usr/sbin', '/usr/local/sbin']
  const file = await onPath(name, folders)
  if (file) {
    const binary = { file, argv0: file, env: {} }
    const version = versionIfAny(packages.versionOf, binary)
    if (version) return { ...binary, source: `${version} from PATH` }
  }
  const none = `No ${packages.title} here, and none could be fetched. Any of these brings one:
  macOS           brew install ${name}
  Debian, Ubuntu  sudo apt-get install ${name}
  elsewhere       set ${variable} to the binary`
  const found = await cached(packages, log).catch((cause: Error) => {
    throw new Error(`${none}\n(${cause.message.trim().split('\n').at(-1)})`, { cause })
  })
  if (!found) throw new Error(none)
  return found
}
