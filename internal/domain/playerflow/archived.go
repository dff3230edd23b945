package playerflow

import (
	"github.com/musterhq/muster/internal/domain/flow"
	"github.com/musterhq/muster/internal/domain/wire"
)

// DecodeChange reads the Data of an EndedRecord.
func DecodeChange(data []byte) (flow.Change, error) {
	var x flow.Change
	err := wire.Unmarshal(data, &x)
	return x, err
}
