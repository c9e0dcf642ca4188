/** Projects outside of the repository, with `sluice` installed as a package: the command and the library are bundles. */
import { spawn } from 'node:child_process'
import { mkdirSync, writeFileSync } from 'node:fs'
import { mkdir, mkdtemp, realpath, rm, symlink } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { freePort } from 'sluice-upstash-bridge'
import { expect } from 'vitest'
import { type RunOptions, root, sluice as sluiceInProcess } from './dev-command.ts'
import { upOrEnded } from './npm-start.ts'
import { packageFolder } from './sluice-package.ts'

/** Makes an empty folder in which `sluice`, Hono and wrangler are installed. */
export async function cliProject() {
  const folder = await realpath(await mkdtemp(join(tmpdir(), 'sluice-cli-')))
  const modules = join(folder, 'node_modules')
  const cli = 'node_modules/.cache/sluice-package/dist/cli.js'
  await mkdir(modules)
  await symlink(packageFolder, join(modules, 'sluice'))
  await symlink(join(root, 'node_modules/wrangler'), join(modules, 'wrangler'))
  await symlink(join(root, 'node_modules/hono'), join(modules, 'hono'))
  // A Redis that was downloaded before.
  await symlink(join(root, 'node_modules/.cache'), join(modules, '.cache')).catch(() => {})
  await mkdir(join(modules, '.bin'))
  await symlink('../sluice/dist/cli.js', join(modules, '.bin/sluice'))

  /** Starts the command, in a process group of its own. */
  function start(args: string[], { env = {}, cwd = '.' }: RunOptions = {}) {
    const child = spawn(process.execPath, [join(modules, '.bin/sluice'), ...args], {
      cwd: join(folder, cwd),
      env: { ...process.env, ...env },
      detached: true,
    })
    child.stdin.on('error', () => {}) // a command that fails or stops does not read all of its input
    return child
  }

  /** Runs the command in this process. */
  const sluice = (args: string[], { cwd = '.', ...options }: RunOptions = {}) =>
    sluiceInProcess(args, { ...options, cwd: join(folder, cwd) }, cli)

  /** Runs the command of the package in a process of its own until it exits. */
  async function spawned(args: string[], options: RunOptions = {}) {
    const child = start(args, options)
    let [stdout, stderr] = ['', '']
    child.stdout.on('data', (chunk) => (stdout += chunk))
    child.stderr.on('data', (chunk) => (stderr += chunk))
    child.stdin.end(options.input ?? '')
    const code = await new Promise((resolve) => child.once('close', resolve))
    return { code, stdout, stderr }
  }

  /** Runs `sluice dev` in this process. It must not start. Returns why. */
  async function refusedDev(env: Record<string, string> = {}): Promise<string> {
    const PORT = String(await freePort())
    const { code, stderr } = await sluice(['dev'], { env: { PORT, ...env } })
    expect(code).toBe(1)
    expect(stderr).toMatch(/^\nCould not start: [^\n]*\n$/)
    return stderr.slice('\nCould not start: '.length, -1)
  }

  let running: number | undefined

  /** Runs `sluice dev`, and waits until everything is up or the process exits. */
  async function dev(env: Record<string, string> = {}, ...args: string[]) {
    const port = env.PORT ?? String(await freePort())
    const child = start(['dev', ...args], { env: { PORT: port, ...env } })
    running = child.pid
    return { url: `http://127.0.0.1:${port}`, ...(await upOrEnded(child)) }
  }

  return {
    folder,
    start,
    sluice,
    spawned,
    refusedDev,
    dev,
    /** Writes a file, with its folder, at once: `sluice dev` may read it meanwhile. */
    async write(name: string, text: string) {
      mkdirSync(dirname(join(folder, name)), { recursive: true })
      writeFileSync(join(folder, name), text)
    },
    /** Kills the last `sluice dev`. */
    kill() {
      try {
        if (running) process.kill(-running, 'SIGKILL')
      } catch {} // it has ended
    },
    remove: () => rm(folder, { recursive: true }),
  }
}

export type CliProject = Awaited<ReturnType<typeof cliProject>>
