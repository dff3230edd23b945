// Package spelling finds the known name that an unknown one is probably a misspelling of.
package spelling

// Nearest returns the known name that is most similar to an unknown one; ok is false if none is similar.
func Nearest(unknown string, known []string) (name string, ok bool) {
	best, bestEdits := "", max(2, len(unknown)/3)+1
	for _, name := range known {
		if n := edits(unknown, name); n < bestEdits {
			best, bestEdits = name, n
		}
	}
	return best, best != ""
}

// edits counts the insertions, deletions and replacements of bytes that turn a into b (Levenshtein).
func edits(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			replace := diagonal
			if a[i] != b[j] {
				replace++
			}
			diagonal = row[j+1]
			row[j+1] = min(replace, row[j]+1, row[j+1]+1)
		}
	}
	return row[len(b)]
}
