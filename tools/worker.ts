import { type RunningWorker, runWorkerd, type WorkerOptions } from '../cli/dev/workerd.ts'
import { type BuiltModules, compatibilityDate, readModules } from './build.ts'

export type { RunningWorker, WorkerOptions } from '../cli/dev/workerd.ts'

/**
 * Runs a built Worker of this repository in workerd.
 * @param built the modules, or the folder that contains them
 */
export async function startWorker(
  built: string | BuiltModules,
  options: WorkerOptions = {},
): Promise<RunningWorker> {
  const modules = typeof built === 'string' ? await readModules(built) : built
  return runWorkerd({ miniflare: await import('miniflare'), compatibilityDate }, modules, options)
}
