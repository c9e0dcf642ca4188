import { createHash } from 'node:crypto'
import { existsSync } from 'node:fs'
import { glob, mkdir, readFile, writeFile } from 'node:fs/promises'
import { startRedis } from 'sluice-upstash-bridge'
import { buildStack } from '../../dev/stack.ts'

/** What the built Workers depend on. */
const SOURCES = [
  'src/**/*.ts',
  'src/**/*.json',
  'dev/*.ts',
  '*.ts',
  'wrangler.toml',
  'package-lock.json',
]
const STAMP = '.cache/workers/sources'

async function hashOfSources(): Promise<string> {
  const hash = createHash('sha256')
  const files: string[] = []
  for await (const file of glob(SOURCES)) files.push(file)
  for (const file of files.sort()) hash.update(`${file}\n`).update(await readFile(file))
  return hash.digest('hex')
}

/** Builds the Workers if their sources have changed. wrangler takes longer than most test files. */
async function buildWorkers() {
  const hash = await hashOfSources()
  if (existsSync(STAMP) && (await readFile(STAMP, 'utf8')) === hash) return
  await buildStack()
  await mkdir('.cache/workers', { recursive: true })
  await writeFile(STAMP, hash)
}

/** Runs once before all test files: downloads Redis if it is not installed, and builds the Workers. */
export default async function setup() {
  const redis = await startRedis({ log: console.log })
  await Promise.all([redis.stop(), buildWorkers()])
}
