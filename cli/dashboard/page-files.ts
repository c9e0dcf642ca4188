/** The files of the page. In the package, the build replaces this module by their text (`pageModule` in bundle.ts). */
import type { PageFiles } from './bundle.ts'

let files: Promise<PageFiles> | undefined

export function pageFiles(): Promise<PageFiles> {
  files ??= import('./bundle.ts').then(({ bundlePage }) => bundlePage())
  return files
}
