import { type Lack, needBody } from '../../core/config/host.ts'

/** Node's servers write their responses themselves. */
export const ofNode: Lack = [
  needBody,
  'sluice/node does not see the body of the response: use createSluice, and pass the Response to finish',
]
