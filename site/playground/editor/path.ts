import type { SyntaxNode, Tree } from '@lezer/common'

/** The documentation of fields: by the path of their object, such as `policies.match`, and their name. */
export type FieldDocs = Record<string, Record<string, string>>

/** The place of the cursor: the path of the object around it, or of the field whose value it is in. Undefined outside of objects. */
export function pathAt(
  tree: Tree,
  text: string,
  at: number,
): { path: string[]; isValue: boolean } | undefined {
  const path: string[] = []
  let isValue = false
  let isInside = false
  for (let node: SyntaxNode | null = tree.resolveInner(at, -1); node; node = node.parent) {
    // An object without its end may read as a pattern.
    if (/^(Pattern)?Property$/.test(node.name)) {
      const name = node.firstChild
      const colon = node.getChild(':')
      const isOfValue = colon !== null && at >= colon.to
      if (!isOfValue && path.length > 0) return undefined
      if (isOfValue && name) {
        if (!isInside) isValue = true
        path.unshift(text.slice(name.from, name.to).replace(/^['"]|['"]$/g, ''))
      }
      isInside = true
    }
    if (/^Object(Expression|Pattern)$/.test(node.name)) isInside = true
  }
  return isInside ? { path, isValue } : undefined
}
