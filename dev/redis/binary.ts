import { spawnSync } from 'node:child_process'

/** How to run a server: the file, the name it must believe it was called by, its environment. */
export type ServerBinary = {
  file: string
  argv0: string
  env: Record<string, string>
  /** For people: `redis-server 7.0.15 from PATH`. */
  source: string
  /** A folder that only this process uses and that can go when the server has ended. */
  disposable?: string
}

/** `redis-server 7.0.15`, as the binary itself says. Throws when it is no server or does not run. */
export function versionOf(binary: Pick<ServerBinary, 'file' | 'argv0' | 'env'>): string {
  const { stdout, stderr, error } = spawnSync(binary.file, ['--version'], {
    argv0: binary.argv0,
    env: { ...process.env, ...binary.env },
    encoding: 'utf8',
    timeout: 5000,
  })
  if (error) throw error
  const said = /^(Redis|Valkey) server v=(\S+)/im.exec(stdout)
  if (!said) throw new Error(`it says "${`${stdout}${stderr}`.trim().slice(0, 200)}"`)
  return `${said[1]?.toLowerCase()}-server ${said[2]}`
}

/** The same, `undefined` where there is nothing that runs. */
export function versionIfAny(
  binary: Pick<ServerBinary, 'file' | 'argv0' | 'env'>,
): string | undefined {
  try {
    return versionOf(binary)
  } catch {
    return undefined
  }
}
