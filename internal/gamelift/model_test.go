package gamelift

import (
	"maps"
	"net/http"
	"reflect"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/musterhq/muster/internal/archive"
	"github.com/musterhq/muster/internal/domain"
	"github.com/musterhq/muster/internal/gamelift/model"
)

// The archive takes every id that the API accepts. A record that it refused would stay in memory, with all that ended later.
func TestArchiveTakesEveryPlayerID(t *testing.T) {
	for _, name := range []string{"PlayerId", "NonZeroAndMaxString"} {
		shape := model.Load().Shapes[name]
		if shape.Max == nil || *shape.Max*utf8.UTFMax > archive.MaxKeyBytes {
			t.Errorf("%s has up to %v characters, a key of the archive %d bytes", name, shape.Max, archive.MaxKeyBytes)
		}
	}
}

func TestTableIsTheWholeModel(t *testing.T) {
	byName, err := compileOperations(model.Load(), operations) // fails where the SDK's inputs and the model differ
	if err != nil {
		t.Fatal(err)
	}
	if got, want := slices.Sorted(maps.Keys(byName)), slices.Sorted(maps.Keys(model.Load().Operations)); !slices.Equal(got, want) {
		t.Errorf("operations of the table and of the model differ:\n%v\n%v", got, want)
	}
	if len(operations) != len(byName) {
		t.Errorf("the table has %d lines for %d operations", len(operations), len(byName))
	}
	checks := newConstraintPlans(model.Load())
	for name, op := range byName {
		if !op.declares[codeInvalidRequest] || !op.declares[codeInternalService] {
			t.Errorf("%s does not declare what every operation is taken to declare", name)
		}
		if op.input.Name() != name+"Input" || op.output.Name() != name+"Output" {
			t.Errorf("%s is bound to %s and %s", name, op.input, op.output)
		}
		if shape := model.Load().Operations[name].Output; shape != "" {
			if _, err := checks.plan(shape, op.output); err != nil {
				t.Errorf("%s: answer: %v", name, err)
			}
		} else if len(op.wire.fields) != 0 {
			t.Errorf("%s has no answer in the model, and one in the SDK", name)
		}
	}
}

func TestEveryRefusalHasAnAPIError(t *testing.T) {
	m := model.Load()
	for _, reason := range domain.Reasons() {
		spelled, cause := toAPI(domain.Refuse(reason, "detail"))
		if cause != nil {
			t.Errorf("reason %s has no API error", reason)
			continue
		}
		_, common := commonStatus[spelled.ErrorCode()]
		if modelled := m.Shapes[spelled.ErrorCode()].Exception; !modelled && !common {
			t.Errorf("reason %s becomes %s, which is not an error of the API", reason, spelled.ErrorCode())
		}
	}
}

func TestModelledErrorsHaveTheirStatus(t *testing.T) {
	for name, shape := range model.Load().Shapes {
		if !shape.Exception && !shape.Fault {
			continue
		}
		want := http.StatusBadRequest
		if shape.Fault {
			want = http.StatusInternalServerError
		}
		if got := statusOf(name); got != want {
			t.Errorf("%s is answered with status %d, want %d", name, got, want)
		}
	}
}

// Both codecs must encode every member of every type, and decode it to the same value.
func TestCodecsCarryEveryType(t *testing.T) {
	plans := wirePlans{}
	for _, op := range operations {
		for _, typ := range []reflect.Type{op.input, op.output} {
			want := reflect.New(typ)
			fill(want.Elem())
			w := plans.plan(typ)
			for _, c := range []codec{jsonCodec{}, cborCodec{}} {
				body := c.appendOutput(nil, w, want.Elem())
				got := reflect.New(typ)
				if err := decodeForTest(c, body, got.Interface()); err != nil {
					t.Errorf("%T %s: %v\n%q", c, typ, err, body)
				} else if !reflect.DeepEqual(normal(got), normal(want)) {
					t.Errorf("%T %s: got %+v, want %+v", c, typ, got, want)
				}
				if strings.Contains(string(body), "ResultMetadata") {
					t.Errorf("%T %s: shows what the SDK keeps for itself", c, typ)
				}
			}
		}
	}
}
