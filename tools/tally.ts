import type { Reporter, TestModule } from 'vitest/node'

/**
 * Prints one plain line at the end of a run: `N passed, N failed`. Lists before it the tests that failed at first
 * and passed when they ran again.
 */
export class Tally implements Reporter {
  onTestRunEnd(modules: readonly TestModule[], errors: readonly unknown[]) {
    let passed = 0
    let failed = errors.length
    const flaky: string[] = []
    for (const module of modules) {
      const tests = [...module.children.allTests()]
      const states = tests.map((test) => test.result().state)
      passed += states.filter((state) => state === 'passed').length
      for (const test of tests) {
        if (test.diagnostic()?.flaky) flaky.push(`${module.relativeModuleId} > ${test.fullName}`)
      }
      const failures = states.filter((state) => state === 'failed').length
      // A file or a hook can fail without a failed test.
      failed += failures > 0 ? failures : Number(module.state() === 'failed')
    }
    // At exit, so that the lines come after the summary of the other reporters.
    process.on('exit', () => {
      for (const test of flaky) console.log(`Passed after a retry: ${test}`)
      console.log(`${passed} passed, ${failed} failed`)
    })
  }
}
