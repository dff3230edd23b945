package simulate

import (
	"fmt"
	"html/template"
	"math"
	"strconv"
	"strings"
	"unicode/utf8"
)

// chart plots several series over the same places: as lines over time, or as groups of bars.
type chart struct {
	title  string
	unit   string // of the values, as "s"
	places []string
	bars   bool
	series []series
}

type series struct {
	name   string
	report int // index of its report, which determines its color
	dashed bool
	values []float64 // NaN: no value
}

const (
	chartWidth, chartHeight         = 720.0, 240.0
	marginLeft, marginRight         = 56.0, 12.0
	marginTop, marginBottom         = 12.0, 28.0
	plotWidth                       = chartWidth - marginLeft - marginRight
	plotHeight                      = chartHeight - marginTop - marginBottom
	gridLines                       = 4
	placesNamed                     = 12
	letterWidth                     = 6.5 // of a label, about
	labelGap                        = 8.0
	barShare                float64 = 0.7 // of the width of a group
)

// svg draws the chart. It escapes the names in it.
func (c *chart) svg() template.HTML {
	var b strings.Builder
	top := c.highest()
	fmt.Fprintf(&b, `<svg viewBox="0 0 %g %g" role="img" aria-label="%s">`, chartWidth, chartHeight, template.HTMLEscapeString(c.title))
	for i := 0; i <= gridLines; i++ {
		v := top * float64(i) / gridLines
		y := marginTop + plotHeight*(1-float64(i)/gridLines)
		fmt.Fprintf(&b, `<line class="grid" x1="%g" x2="%g" y1="%.1f" y2="%.1f"/>`, marginLeft, chartWidth-marginRight, y, y)
		fmt.Fprintf(&b, `<text x="%g" y="%.1f" text-anchor="end">%s</text>`, marginLeft-6, y+4, axis(v))
	}
	each := c.placesPerLabel()
	for i, place := range c.places {
		if i%each == 0 {
			fmt.Fprintf(&b, `<text x="%.1f" y="%g" text-anchor="middle">%s</text>`, c.middle(i), chartHeight-8, template.HTMLEscapeString(place))
		}
	}
	for i := range c.series {
		if c.bars {
			c.drawBars(&b, i, top)
		} else {
			c.drawLine(&b, i, top)
		}
	}
	b.WriteString(`</svg>`)
	return template.HTML(b.String())
}

// placesPerLabel returns the distance between places with a label: so large that no label touches the next.
func (c *chart) placesPerLabel() int {
	longest := 0
	for _, place := range c.places {
		longest = max(longest, utf8.RuneCountInString(place))
	}
	fit := max(1, min(placesNamed, int(plotWidth/(letterWidth*float64(longest)+labelGap))))
	return max(1, (len(c.places)+fit-1)/fit)
}

func (c *chart) middle(place int) float64 {
	return marginLeft + plotWidth*(float64(place)+0.5)/float64(max(1, len(c.places)))
}

// highest returns a round number above all values.
func (c *chart) highest() float64 {
	most := 0.0
	for _, s := range c.series {
		for _, v := range s.values {
			if !math.IsNaN(v) {
				most = max(most, v)
			}
		}
	}
	if most == 0 {
		return 1
	}
	step := math.Pow(10, math.Floor(math.Log10(most)))
	for _, f := range []float64{1, 2, 4, 5, 10} {
		if f*step >= most {
			return f * step
		}
	}
	return 10 * step
}

func (c *chart) drawLine(b *strings.Builder, i int, top float64) {
	s := &c.series[i]
	var path strings.Builder
	move := "M"
	for j, v := range s.values {
		if math.IsNaN(v) {
			move = "M"
			continue
		}
		fmt.Fprintf(&path, "%s%.1f %.1f", move, c.middle(j), marginTop+plotHeight*(1-v/top))
		move = "L"
	}
	fmt.Fprintf(b, `<path class="%s" d="%s"/>`, s.class(), path.String())
}

func (s *series) class() string {
	class := "r" + strconv.Itoa(s.report)
	if s.dashed {
		class += " dashed"
	}
	return class
}

func (c *chart) drawBars(b *strings.Builder, i int, top float64) {
	s := &c.series[i]
	width := plotWidth / float64(max(1, len(c.places))) * barShare / float64(len(c.series))
	for j, v := range s.values {
		if math.IsNaN(v) {
			continue
		}
		height := plotHeight * v / top
		x := c.middle(j) + (float64(i)-float64(len(c.series))/2)*width
		fmt.Fprintf(b, `<rect class="%s" x="%.1f" y="%.1f" width="%.1f" height="%.1f"><title>%s %s: %s %s</title></rect>`,
			s.class(), x, marginTop+plotHeight-height, width*0.92, height,
			template.HTMLEscapeString(s.name), template.HTMLEscapeString(c.places[j]), short(v), template.HTMLEscapeString(c.unit))
	}
}

func axis(v float64) string { return strconv.FormatFloat(v, 'g', 4, 64) }
