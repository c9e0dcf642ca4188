/** Runs `npm start` in a copy of the project, and finds the processes that it starts. */
import { type ChildProcess, execFileSync, spawn } from 'node:child_process'
import { createHash } from 'node:crypto'
import { cp, readFile, rm, symlink, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { freePort } from 'sluice-upstash-bridge'
import { expect } from 'vitest'

const project = fileURLToPath(new URL('../..', import.meta.url))

/**
 * Copies the project, so that a test may change files that other tests read.
 * @param name of a folder that stays the same, so that Node finds the modules that it has compiled
 */
export async function copyProject(name: string) {
  const root = join(
    tmpdir(),
    `sluice-${name}-${createHash('sha1').update(project).digest('hex').slice(0, 8)}/`,
  )
  await rm(root, { recursive: true, force: true })
  for (const name of [
    'src',
    'lua',
    'cli',
    'tools',
    'package.json',
    'tsconfig.json',
    'wrangler.toml',
  ]) {
    await cp(join(project, name), join(root, name), { recursive: true })
  }
  const config = await readFile(join(project, 'sluice.config.ts'), 'utf8')
  // A long deadline, so that a slow machine causes no store errors.
  const patient = config.replace("origin: 'zone',", "origin: 'zone',\n  deadline: '10s',")
  await writeFile(join(root, 'sluice.config.ts'), patient)
  await symlink(join(project, 'node_modules'), join(root, 'node_modules'))

  let child: ChildProcess | undefined

  /** Runs `npm start`, and waits until everything is up or the process exits. */
  async function npmStart(env: Record<string, string> = {}, ...args: string[]) {
    const port = env.PORT ?? String(await freePort())
    const started = spawn('npm', ['start', ...args], {
      cwd: root,
      env: { ...process.env, PORT: port, ...env },
      detached: true,
    })
    child = started
    return { url: `http://127.0.0.1:${port}`, ...(await upOrEnded(started)) }
  }

  return {
    root,
    npmStart,
    /** Kills the processes of the last `npm start`. */
    kill() {
      if (child?.exitCode === null && child.signalCode === null)
        process.kill(-child.pid!, 'SIGKILL')
    },
    remove: () => rm(root, { recursive: true }),
  }
}

export type Project = Awaited<ReturnType<typeof copyProject>>

/** Waits until `npm start` or `sluice dev` has started everything, or has ended. */
export async function upOrEnded(child: ChildProcess) {
  let output = ''
  const ended = new Promise<number | null>((resolve) => child.once('exit', resolve))
  const up = new Promise<void>((resolve) => {
    for (const stream of [child.stdout!, child.stderr!]) {
      stream.on('data', (chunk) => {
        output += chunk
        if (output.includes('Ctrl-C stops everything.')) resolve()
      })
    }
  })
  await Promise.race([up, ended])
  return { pid: child.pid!, ended, output: () => output }
}

/** A process and its descendants. */
export function processes(ancestor: number): { pid: number; command: string }[] {
  const rows = execFileSync('ps', ['-eo', 'pid=,ppid=,args='], { encoding: 'utf8' })
    .trim()
    .split('\n')
    .map((row) => /^\s*(\d+)\s+(\d+)\s+(.*)$/.exec(row)!)
    .map(([, pid, parent, command]) => ({
      pid: Number(pid),
      parent: Number(parent),
      command: command!,
    }))
  const family = new Set([ancestor])
  for (let size = 0; size < family.size; ) {
    size = family.size
    for (const { pid, parent } of rows) if (family.has(parent)) family.add(pid)
  }
  return rows.filter(({ pid, command }) => family.has(pid) && !command.startsWith('ps '))
}
/** Waits until these processes have ended. */
export const waitUntilEnded = (family: { pid: number; command: string }[]) =>
  expect.poll(() => family.filter(({ pid }) => alive(pid))).toEqual([])
const alive = (pid: number) => {
  try {
    return process.kill(pid, 0)
  } catch {
    return false
  }
}

const PARTS = {
  redis: [/^\S*(redis|valkey)\S* /, 'Redis'],
  workerd: [/\/workerd serve/, 'the Worker'],
  'the host of workerd': [/(main\.ts|cli\.js) --process host/, 'the Worker'],
} as const

/** Kills a part of `npm start` or `sluice dev`. Expects that the command reports it, and stops the rest. */
export async function crash(
  run: { pid: number; ended: Promise<unknown>; output(): string },
  part: keyof typeof PARTS,
) {
  const family = processes(run.pid)
  const [pattern, name] = PARTS[part]
  process.kill(family.find(({ command }) => pattern.test(command))!.pid, 'SIGKILL')
  expect(await run.ended).toBe(1)
  expect(run.output()).toContain(`Stopped: ${name} ended`)
  await waitUntilEnded(family)
}
