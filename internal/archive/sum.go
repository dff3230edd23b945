package archive

import (
	"encoding/binary"
	"hash/crc32"
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// Sum returns a CRC-32C of records. It reveals changes in transit between two archives.
func Sum(records []Record) (sum uint32) {
	var head []byte
	for i := range records {
		r := &records[i]
		head = binary.BigEndian.AppendUint64(append(head[:0], byte(r.Kind)), uint64(r.Created))
		head = binary.BigEndian.AppendUint64(head, uint64(r.Ended))
		for _, text := range []string{r.ID, r.Fleet, r.Group, r.Player} {
			head = append(binary.BigEndian.AppendUint32(head, uint32(len(text))), text...)
		}
		head = binary.BigEndian.AppendUint32(head, uint32(len(r.Data)))
		sum = crc32.Update(crc32.Update(sum, castagnoli, head), castagnoli, r.Data)
	}
	return sum
}

// Supersedes reports whether r replaces a record with its kind and id in another archive: of two attempts, the later one ended later.
func (r *Record) Supersedes(stored *Record) bool {
	return r.Ended > stored.Ended || r.Ended == stored.Ended && r.Created > stored.Created
}
