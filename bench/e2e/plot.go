//go:build linux

package main

import (
	"bytes"
	"encoding/xml"
	"fmt"
)

// chart is a plot of horizontal bars.
type chart struct {
	title, unit string
	bars        []bar
}

type bar struct {
	label string
	value float64
}

// Measures of a chart in pixels.
const (
	chartWidth  = 720
	chartLabels = 190 // in front of the bars
	chartValues = 80  // behind the longest
	chartHead   = 56
	chartStep   = 26
)

// svg draws c.
func (c *chart) svg() []byte {
	longest := 0.0
	for _, b := range c.bars {
		longest = max(longest, b.value)
	}
	var w bytes.Buffer
	fmt.Fprintf(&w, `<svg xmlns="http://www.w3.org/2000/svg" width="%d" height="%d" font-family="sans-serif" font-size="13">`+"\n",
		chartWidth, chartHead+chartStep*len(c.bars)+8)
	fmt.Fprintf(&w, `<rect width="100%%" height="100%%" fill="white"/>`+"\n")
	fmt.Fprintf(&w, `<text x="8" y="20" font-weight="bold">%s</text>`+"\n", escape(c.title))
	fmt.Fprintf(&w, `<text x="8" y="40" fill="#555">%s</text>`+"\n", escape(c.unit))
	for i, b := range c.bars {
		y := chartHead + chartStep*i
		width := 0.0
		if longest > 0 {
			width = max(b.value, 0) / longest * (chartWidth - chartLabels - chartValues)
		}
		fmt.Fprintf(&w, `<text x="%d" y="%d" text-anchor="end">%s</text>`+"\n", chartLabels-8, y+14, escape(b.label))
		fmt.Fprintf(&w, `<rect x="%d" y="%d" width="%.1f" height="18" fill="#3b6ea5"/>`+"\n", chartLabels, y, width)
		fmt.Fprintf(&w, `<text x="%.1f" y="%d">%.2f</text>`+"\n", chartLabels+width+6, y+14, b.value)
	}
	w.WriteString("</svg>\n")
	return w.Bytes()
}

// escape returns s as text of XML.
func escape(s string) string {
	var w bytes.Buffer
	_ = xml.EscapeText(&w, []byte(s)) // a bytes.Buffer takes everything
	return w.String()
}
