import { useObjects } from '../../../support/objects.ts'
import { splitLaws } from '../../../support/split-laws.ts'

const { store } = useObjects()
// The Worker finishes its background work before it replies.
splitLaws(() => ({ store: store, waitUntil: () => {}, settled: async () => {} }))
