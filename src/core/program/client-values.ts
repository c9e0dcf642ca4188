/** The sources of key parts that a client writes: header fields, cookies and parameters of the query. */
import type { KeyPart } from '../config/schema/key.ts'
import { folded } from '../request/fold.ts'
import { readSource } from '../request/source.ts'
import type { PartSource, Sources } from './source.ts'

const named: PartSource = {
  compile: (part: Extract<KeyPart, { source: 'header' | 'cookie' | 'query' }>) => (view) =>
    readSource(part, view),
  fold: folded,
}

export const clientValues: Sources = { header: named, cookie: named, query: named }
