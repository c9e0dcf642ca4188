import type { Unusable } from '../base/unusable.ts'
import type { TokenView } from './view.ts'

/** Reads the claims of a request's verified token, as an object without a prototype; `undefined` if the request has no token. Never throws. */
export type Claims = (view: TokenView) => Promise<Record<string, unknown> | Unusable | undefined>
