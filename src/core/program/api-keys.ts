import { sha256 } from '../base/digest.ts'
import { needed } from '../base/needed.ts'
import type { Sources } from './source.ts'

export const apiKeySource: Sources = {
  'api-key': {
    compile: (_, { readers }) => needed(readers.apiKey, 'apiKeys'),
    // Quotas are counted by the digest of a key, so an operator may only know the digest.
    given: (value) => /^sha256:([\da-f]{64})$/i.exec(value)?.[1]?.toLowerCase() ?? sha256(value),
  },
}
