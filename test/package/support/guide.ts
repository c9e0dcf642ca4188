/** The code of the guide "Limit anything". */
import { basename } from 'node:path'
import { blocksOf, pageAt } from '../../support/pages.ts'

const blocks = blocksOf(pageAt('docs/guides/limit-anything.md'))

/**
 * The code of a place, by the path of its file.
 * With a long deadline, so that a slow machine causes no store errors.
 */
export function placeOf(path: string): string {
  const { code } = blocks.find(({ name }) => name === basename(path, '.ts'))!
  return code.replace("window: '1h'", "window: '1h', deadline: '10s'")
}
