"""Tables of the surface edits: keys side by side, contractions, British and American spellings, more known words."""

from __future__ import annotations

_ROWS = ("qwertyuiop", "asdfghjkl", "zxcvbnm")


def _neighbours() -> dict[str, str]:
    """Letters whose keys touch on a QWERTY keyboard, rows shifted by a quarter and three quarters of a key."""
    places = {
        letter: (column + (0.0, 0.25, 0.75)[row], row)
        for row, keys in enumerate(_ROWS)
        for column, letter in enumerate(keys)
    }
    return {
        one: "".join(
            other
            for other, (x, y) in places.items()
            if other != one and abs(y - places[one][1]) <= 1 and abs(x - places[one][0]) <= 1
        )
        for one in places
    }


NEIGHBOURS = _neighbours()


def _both_ways(pairs: str) -> dict[str, str]:
    table: dict[str, str] = {}
    for pair in pairs.split():
        one, other = pair.split("/")
        table[one], table[other] = other, one
    return table


SPELLINGS = _both_ways(
    "color/colour colors/colours colored/coloured coloring/colouring colorful/colourful gray/grey grays/greys "
    "center/centre centers/centres centered/centred theater/theatre theaters/theatres fiber/fibre fibers/fibres "
    "favorite/favourite favorites/favourites flavor/flavour flavors/flavours flavored/flavoured harbor/harbour "
    "harbors/harbours neighbor/neighbour neighbors/neighbours neighborhood/neighbourhood humor/humour labor/labour "
    "behavior/behaviour odor/odour armor/armour parlor/parlour vapor/vapour rumor/rumour "
    "airplane/aeroplane airplanes/aeroplanes aluminum/aluminium jewelry/jewellery mustache/moustache "
    "mustaches/moustaches pajamas/pyjamas plow/plough plows/ploughs skeptical/sceptical catalog/catalogue "
    "traveler/traveller travelers/travellers traveling/travelling traveled/travelled labeled/labelled "
    "labeling/labelling canceled/cancelled canceling/cancelling modeling/modelling modeled/modelled "
    "leveled/levelled signaling/signalling paneled/panelled organized/organised organizing/organising "
    "recognize/recognise recognized/recognised realize/realise realized/realised "
    "defense/defence offense/offence license/licence gluing/glueing woolen/woollen molded/moulded molding/moulding "
    "moldy/mouldy smolder/smoulder donut/doughnut donuts/doughnuts omelet/omelette artifact/artefact "
    "artifacts/artefacts cozy/cosy sulfur/sulphur yogurt/yoghurt"
)
"""Words that are spelled in two ways and mean the same in both. Tire/tyre, curb/kerb, check/cheque, story/storey and
meter/metre are not here: one of the spellings has a second meaning."""

_CONTRACTED = {
    "what is": "what's", "where is": "where's", "who is": "who's", "how is": "how's", "there is": "there's",
    "that is": "that's", "i am": "i'm", "you are": "you're", "they are": "they're", "we are": "we're",
}  # fmt: skip
CONTRACTIONS = {**_CONTRACTED, "what's": "what is", "where's": "where is", "who's": "who is", "how's": "how is"}
"""Both ways where the way back is sure: `there's` may be `there has`. Negations are not touched."""

_MORE = """
    about above across after again against ahead alike almost alone along already also although always among another
    any around aside away awake aware back backward bare basic because been before behind being below beneath beside
    besides best better between beyond bigger blank blind blond bold both brave brief bright broad busy calm cheap
    clean clear close cold cool could crisp cruel curly damp dark dead deaf dear deep dense dirty double down dried
    drunk dull each early easy either else empty enough equal even ever every exact extra fair faint fake false fast
    fatter few fewer fifth final fine first firm flat fond foreign former forth found fourth free fresh from front
    full further giant given glad gone good grand great gross half hanging happy hard harsh heavy hence here hers
    high his hollow hot huge hungry idle inner inside instead into its itself just keen kind large larger last late
    later lazy lean least left less level like likely little live lone lonely long longer loose loud lower lucky
    made main major many maybe mean mere middle might mild minor mixed moist more most much must naked narrow nasty
    near nearly neat never new next nice noisy none odd often older once only onto open orange other ours out outer
    outside oval over own pale past perhaps plain polite poor pretty prior proper proud pure quick quiet quite rare
    rather raw ready real rear rich right ripe rough round rude sacred safe same scary second several shall shallow
    sharp sheer shiny short should shut shy sick silent silly simple since single sixth slender slim slow small
    smart smooth snowy soft solid some soon sore sour spare stable stale steady steep stiff still stout straight
    strange strict striped strong such sudden sunny super sure sweet swift tall tame tender than that their theirs
    them then there these they thick thin third this those though thought through thus tidy tight tiny tired
    together too tough toward true twice ugly under until unto upon upper upright upward used usual vague vain vast
    very vivid warm weak wealthy weird well went were what when where whether which while white whole whose wide
    wild wise with within would wrong yellow young your yours
    able all and apt big but for her him how mad nor not our per sad she the thee thy via whom wry yet you
"""
KNOWN = frozenset(_MORE.split())
"""Words of three letters or more that a slip may make of others and that are neither nouns nor verbs in WordNet."""
