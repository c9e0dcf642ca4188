/** Workers of the tests, bundled as `sluice dev` does. wrangler needs ten times as long. */
import { bundle } from '../../cli/project/bundle.ts'
import type { BuiltModules } from '../../tools/build.ts'
import { root } from './pages.ts'

/**
 * Bundles a Worker of this repository.
 * @param main its file, from the root
 */
export async function bundled(main: string): Promise<BuiltModules> {
  const { script } = await bundle(root, {
    ...{ main, rules: [], compatibilityFlags: [], define: {}, alias: {} },
  } as never)
  return { mainModule: 'worker.js', modules: { 'worker.js': { type: 'esm', contents: script } } }
}
