package policy

// The classes of bytes by which a text is weighed, see EstimateTokens.
const (
	classSpace   uint8 = iota
	classNewline       // and other control characters
	classLower
	classUpper
	classDigit
	classPunct
	classCont            // what follows the first byte of a character
	classLatin           // U+00C0 to U+027F
	classSymbol          // U+0080 to U+00BF and U+2000 to U+2FFF
	classAlphabet        // Greek, Cyrillic, Hebrew, Arabic and others of two bytes
	classIndic           // U+0800 to U+0FFF
	classGeorgian        // U+1000 to U+1FFF, and Latin letters with two marks
	classKana            // U+3000 to U+3FFF
	classWide            // Han, emoji and all that is beyond U+FFFF
	classHangul          // U+A000 to U+DFFF
	classHalfwidth       // U+E000 to U+FFFF
	numByteClasses       = 16
	classStop      uint8 = 0x80 // is added where a JSON string ends or has an escape
)

// classes are the classes of all bytes, made once.
var classes = func() (classes [256]uint8) {
	set := func(class uint8, first, last int) {
		for c := first; c <= last; c++ {
			classes[c] = class
		}
	}
	set(classNewline, 0, 0x1F)
	set(classPunct, 0x20, 0x7E)
	set(classSpace, ' ', ' ')
	set(classDigit, '0', '9')
	set(classUpper, 'A', 'Z')
	set(classLower, 'a', 'z')
	set(classNewline, 0x7F, 0x7F)
	set(classCont, 0x80, 0xBF)
	set(classSymbol, 0xC0, 0xC2)
	set(classLatin, 0xC3, 0xC9)
	set(classAlphabet, 0xCA, 0xDF)
	set(classIndic, 0xE0, 0xE0)
	set(classGeorgian, 0xE1, 0xE1)
	set(classSymbol, 0xE2, 0xE2)
	set(classKana, 0xE3, 0xE3)
	set(classWide, 0xE4, 0xE9)
	set(classHangul, 0xEA, 0xED)
	set(classHalfwidth, 0xEE, 0xEF)
	set(classWide, 0xF0, 0xFF)
	set(classPunct|classStop, '"', '"')
	set(classPunct|classStop, '\\', '\\')
	return classes
}()

// base64Bytes are those of base64, and the backslash.
var base64Bytes = func() (only [256]bool) {
	for _, c := range []byte("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/-_=\\") {
		only[c] = true
	}
	return only
}()

// weights are what a byte adds, in 1/256 of a token, by prev<<4 | class. They were
// fitted, see EstimateTokens; whatever is not ASCII has one row as prev.
var weights = func() (weights [numByteClasses * numByteClasses]uint16) {
	rows := [classCont + 1][numByteClasses]uint16{
		classSpace:   {14, 85, 144, 89, 204, 188, 0, 133, 113, 136, 51, 112, 187, 210, 164, 296},
		classNewline: {65, 182, 117, 71, 110, 143, 0, 133, 113, 136, 51, 112, 187, 210, 164, 296},
		classLower:   {72, 292, 21, 34, 174, 128, 0, 244, 113, 31, 51, 112, 187, 210, 164, 296},
		classUpper:   {0, 94, 88, 65, 108, 130, 0, 244, 113, 31, 51, 112, 187, 210, 164, 296},
		classDigit:   {78, 125, 213, 85, 130, 262, 0, 133, 113, 136, 51, 112, 187, 210, 164, 296},
		classPunct:   {94, 56, 199, 188, 241, 56, 0, 133, 113, 136, 51, 112, 187, 210, 164, 296},
		classCont:    {173, 16, 159, 89, 79, 59, 0, 244, 113, 31, 51, 112, 187, 210, 164, 296},
	}
	for prev := range numByteClasses {
		copy(weights[prev*numByteClasses:], rows[min(prev, int(classCont))][:])
	}
	return weights
}()
