#!/usr/bin/env node
/** The command `sluice`. Imports nothing but this list at first, so that an old Node gets one clear line. */
import { fileURLToPath } from 'node:url'

const OLDEST_NODE = 20
const [major] = process.versions.node.split('.')

if (Number(major) < OLDEST_NODE) {
  console.error(`Sluice needs Node ${OLDEST_NODE} or newer; this is ${process.version}.`)
  process.exit(1)
}
const { run } = await import('./run.ts')
await run(process.argv.slice(2), fileURLToPath(import.meta.url))
