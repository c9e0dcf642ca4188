import { spawn } from 'node:child_process'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterDeath, freePort, type ServerBinary } from 'sluice-upstash-bridge'
import type { ProxyName } from './binaries.ts'
import { configure, type Settings } from './example.ts'

export interface RunningProxy {
  url: string
  /** The output so far. */
  output(): string
  stop(): Promise<void>
}

/** Runs a proxy with its example, on a free loopback port. Resolves when it accepts connections. */
export async function runProxy(
  name: ProxyName,
  binary: ServerBinary,
  settings: Settings,
): Promise<RunningProxy> {
  // Another process may take the port before the proxy binds it.
  for (let attempt = 1; ; attempt++) {
    try {
      return await run(name, binary, settings, await freePort())
    } catch (error) {
      const lost = error instanceof Error && /address already in use/i.test(error.message)
      if (!lost || attempt === 5) throw error
    }
  }
}

async function run(
  name: ProxyName,
  binary: ServerBinary,
  settings: Settings,
  port: number,
): Promise<RunningProxy> {
  const folder = await mkdtemp(join(tmpdir(), `sluice-${name}-`))
  const file = join(folder, name === 'nginx' ? 'nginx.conf' : 'Caddyfile')
  await writeFile(file, await configure(name, settings, { port, folder }), { mode: 0o600 })

  const child = spawn(binary.file, ARGUMENTS[name](folder, file), {
    argv0: binary.argv0,
    cwd: folder,
    // Caddy stores its state in these folders.
    env: {
      ...process.env,
      ...binary.env,
      HOME: folder,
      XDG_CONFIG_HOME: folder,
      XDG_DATA_HOME: folder,
    },
    stdio: ['ignore', 'pipe', 'pipe'],
    // A separate process group, so that Ctrl-C reaches only this process, and the workers of the proxy end with it.
    detached: true,
  })
  let text = ''
  const { promise: ready, resolve: isReady } = Promise.withResolvers<boolean>()
  for (const stream of [child.stdout, child.stderr]) {
    stream.setEncoding('utf8').on('data', (chunk: string) => {
      text = (text + chunk).slice(-16_384)
      // Wait for this log line: another server on this port could accept a connection.
      if (text.includes(READY[name])) isReady(true)
    })
  }
  let ended = false
  const exited = new Promise<void>((resolve) => {
    child.once('error', (error) => {
      text += error.message
      resolve()
    })
    child.once('close', () => resolve())
  }).finally(async () => {
    ended = true
    await rm(folder, { recursive: true, force: true })
  })
  exited.then(afterDeath('kill "$1" 2>/dev/null; rm -rf "$2"', String(child.pid), folder))

  const stop = async () => {
    const late = setTimeout(() => {
      if (!ended && child.pid) process.kill(-child.pid, 'SIGKILL')
    }, 3000)
    child.kill('SIGTERM')
    await exited
    clearTimeout(late)
  }
  const late = setTimeout(() => isReady(false), 15_000)
  const up = await Promise.race([ready, exited.then(() => false)])
  clearTimeout(late)
  if (!up) {
    await stop()
    throw new Error(`${binary.source} did not start on port ${port}. Its output:\n${text.trim()}`)
  }
  return { url: `http://127.0.0.1:${port}`, output: () => text, stop }
}

const READY: Record<ProxyName, string> = {
  nginx: 'start worker process ',
  caddy: 'serving initial configuration',
}

const ARGUMENTS: Record<ProxyName, (folder: string, file: string) => string[]> = {
  nginx: (folder, file) => {
    const directives = ['daemon off', `pid ${folder}/pid`, 'error_log stderr notice']
    // As root, nginx would otherwise switch to a user without access to the folder.
    if (process.getuid?.() === 0) directives.push('user root')
    return ['-p', folder, '-c', file, '-e', 'stderr', '-g', `${directives.join('; ')};`]
  },
  caddy: (_, file) => ['run', '--adapter', 'caddyfile', '--config', file],
}
