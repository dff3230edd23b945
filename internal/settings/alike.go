package settings

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"reflect"
)

// Alike reports whether a setting should have the same value at all nodes of a cluster. Other settings concern one machine or one node.
func Alike(field reflect.StructField) bool { return field.Tag.Get("nodes") != "own" }

// Marks returns a digest of each value that all nodes of a cluster should share and that is not the default, by setting. Nodes can compare digests without revealing values. For settings
// that name files, contents has digests of the files' contents, because paths may differ.
func (s Settings) Marks(contents map[string]string) map[string]uint64 {
	all := map[string]uint64{}
	values, defaults := reflect.ValueOf(s), reflect.ValueOf(Defaults())
	for i := range values.NumField() {
		field := values.Type().Field(i)
		if !Alike(field) || values.Field(i).Equal(defaults.Field(i)) {
			continue
		}
		name := field.Tag.Get("name")
		text, isFile := contents[name]
		if !isFile {
			text = fmt.Sprint(values.Field(i).Interface())
		}
		sum := sha256.Sum256([]byte(text))
		all[name] = binary.BigEndian.Uint64(sum[:])
	}
	return all
}
