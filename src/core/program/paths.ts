import type { KeyPart } from '../config/schema/key.ts'
import { folded } from '../request/fold.ts'
import { normalizePath, pathMatcher, pathOf, readings } from '../request/path.ts'
import type { RequestView } from '../request/view.ts'
import type { Sources } from './source.ts'

/** The most readings of a path, each of which may need a quota of each policy in one call. */
const MAX_READINGS = 16

/** Views of the request, one for each reading of its path. A path with too many of them is unreadable. */
export function readingsOf(view: RequestView): RequestView[] {
  const paths = view.pathsBy(readings)
  if (paths.length === 1) return [view]
  const { omitted = [] } = view
  if (paths.length > MAX_READINGS) return [view.with({ omitted: [...omitted, 'path'] })]
  return paths.map((path) => view.with({ path }))
}

export const pathSources: Sources = {
  path: {
    compile:
      (_, { unreadable }) =>
      (view) =>
        view.omitted?.includes('path') ? unreadable : pathOf(view),
    given(value, _, { caseSensitivePaths }) {
      if (!value.startsWith('/')) return new Error('a path that begins with /')
      const path = normalizePath(new URL(`http://host${value}`).pathname)
      return caseSensitivePaths ? path : path.toLowerCase()
    },
  },
  'path-parameter': {
    compile(
      { name }: Extract<KeyPart, { source: 'jwt' | 'path-parameter' }>,
      { paths, caseSensitivePaths, unreadable },
    ) {
      const patterns = paths.map((pattern) => pathMatcher(pattern, caseSensitivePaths))
      return (view) =>
        view.omitted?.includes('path')
          ? unreadable
          : patterns.map((match) => match(pathOf(view))?.[name]).find((value) => value)
    },
    fold: (value, _, { caseSensitivePaths }) => (caseSensitivePaths ? value : folded(value)),
    // Policies ignore the part of a segment after `;`, and never decode a `/` in it.
    given(value, _, { caseSensitivePaths }) {
      const text = value.replace(/;.*/s, '').replace(/[/\\]/g, encodeURIComponent)
      return (caseSensitivePaths ? text : folded(text.toLowerCase())) || undefined
    },
  },
}
