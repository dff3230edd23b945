// Package plural writes numbers of things for people.
package plural

import "fmt"

// Of writes a number of things, such as "1 host" and "3 hosts".
func Of[N ~int | ~int32 | ~int64 | ~uint32 | ~uint64](n N, one, more string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprint(n, " ", more)
}
