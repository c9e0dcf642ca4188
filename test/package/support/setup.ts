import { rm } from 'node:fs/promises'
import type { TestProject } from 'vitest/node'
import { build, pack } from '../../../tools/package/pack.ts'

declare module 'vitest' {
  interface ProvidedContext {
    /** The path of the packed package. */
    tarball: string
    /** The files in it. */
    packedFiles: string[]
  }
}

/** Builds and packs the package once for all consumers. */
export default async function setup({ provide }: TestProject) {
  await build()
  const { file, folder, paths } = await pack()
  provide('tarball', file)
  provide('packedFiles', paths)
  return () => rm(folder, { recursive: true })
}
