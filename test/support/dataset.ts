import { DatabaseSync } from 'node:sqlite'
import type { DataPoint } from '../../src/features/observe/analytics.ts'

const columns = (name: string) => Array.from({ length: 20 }, (_, index) => `${name}${index + 1}`)

/** A dataset of the Workers Analytics Engine, as a table of SQLite. Times are numbers of seconds. */
export function createDataset(name: string, functions: Parameters<DatabaseSync['function']>[1][]) {
  const database = new DatabaseSync(':memory:')
  const blobs = columns('blob').map((column) => `${column} DEFAULT ''`)
  const doubles = columns('double').map((column) => `${column} REAL DEFAULT 0`)
  const fields = ['timestamp', '_sample_interval', "index1 DEFAULT ''", ...blobs, ...doubles]
  database.exec(`CREATE TABLE "${name}" (${fields})`)
  database.function('toDateTime', (seconds) => seconds)
  for (const one of functions) database.function(one.name, one)
  return {
    /** Writes a point that stands for `sampleInterval` points. */
    write({ indexes, blobs, doubles }: DataPoint, timestamp: number, sampleInterval: number) {
      const names = [
        ...['timestamp', '_sample_interval', 'index1'],
        ...columns('blob').slice(0, blobs.length),
        ...columns('double').slice(0, doubles.length),
      ]
      database
        .prepare(`INSERT INTO "${name}" (${names}) VALUES (${names.map(() => '?')})`)
        .run(timestamp, sampleInterval, indexes[0], ...blobs, ...doubles)
    },
    query: (sql: string): Record<string, unknown>[] => database.prepare(sql).all(),
    close: () => database.close(),
  }
}
