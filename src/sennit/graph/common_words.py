"""Common English words that are also titles of films, songs and sections."""

from __future__ import annotations

from typing import Final

COMMON_WORDS: Final = frozenset(
    """
    about above access account act action active actor actual add address adult advice affair after again age agent
    ago agree air album all alone along also always amount analysis animal another answer appendix application area
    arm army around art article artist ask assistant attack author available average award away baby back bad bag
    ball band bank bar base basic battle beach bear beat beauty because become bed before begin behind believe best
    better between big bill bird birth birthday black blood blue board boat body bone book border born both bottle
    bottom box boy brain bread break bridge bright bring brother brown build building burn bus business buy cake call
    camera camp card care career case cash castle cat catch cause center central century chain chair champion chance
    change changes chapter character check child children choice church circle city class clean clear clock close
    cloud club coach coast code coffee cold collection college color colour comedy comment common community company
    computer conclusion condition configuration contact content contents control cook cool copy corner cost country
    couple course court cover crazy cream create credit crime cross crowd culture cup current cut cycle daily dance
    danger dark data date daughter day days dead deal dear death decade decision deep default definition degree demo
    design desire detail details develop device devil diary die different dinner direct direction director discovery
    discussion disease doctor document dog doll dollar door double down draft drama draw dream dress drink drive drop
    dry dust early earth east easy eat edge editor education effect eight either electric eleven else email empire
    empty end enemy energy engine english enough entry environment error escape even evening event events ever every
    everything evil exam example examples exchange exercise expert express eye eyes face fact facts fall false
    family fan far farm fast fat father fear feature features feel feeling feet few field fight file files film final
    find fine finger finish fire first fish five fix flag flash flat flight floor flow flower fly follow food foot
    football force foreign forest forever forget form forward found four free freedom fresh friend friends front full
    fun function funny future game garden gas gate general get ghost gift girl give glass go goal god gold good
    government grand great green ground group grow guard guest guide guitar gun guy hair half hall hand hands happy
    hard hat head health hear heart heat heaven heavy hell hello help hero hide high hill history hit hold hole
    holiday home hope horse hospital hot hotel hour house however human hundred hunger hunt husband ice idea image
    important inside installation interest introduction island issue item job join journey joy judge jump just keep
    key kid kill kind king kiss kitchen knife knight know knowledge lady lake land language large last late laugh
    law lead leader learn leave left leg legend lesson let letter level library license lie life light like line
    lines lion list little live lives living local location lock log long look lord lose loss lost lot love lover low
    luck lunch machine magic mail main make man management many map march mark market marriage master match matter
    may maybe meal mean meat medicine meet meeting member members memory men message metal method methods middle
    might mile milk mind mine minute mirror miss mission mistake model modern moment money monster month moon more
    morning most mother motion mountain mouse mouth move movement movie much murder music must mystery name names
    nation natural nature near neck need never new news next nice night nine nobody noise none normal north nose note
    notes nothing notice now number object ocean offer office often oil old once one only open option options orange
    order other out output outside over overview own owner page pages pain paint pair palace paper parent parents
    park part party pass passion past path pattern peace pen people percent perfect performer period person phone
    photo picture piece place plan plane planet plant play player please point police pool poor popular population
    position possible post power present president press price pride prince princess principle prison private prize
    problem process produce producer product professor profile program programme progress project promise public
    pull purpose push put quality queen question quick quiet race radio rain raise range rate read reader reading
    ready real reality reason record red reference references region release remember report request requirements
    research resource resources rest result results return revenge review revolution rich ride right ring rise
    risk river road rock role room rose round rule rules run safe sail salt same sand save saw say scene school
    science score sea search season seat second secret section security see self sell send sense series service set
    settings setup seven several shadow shape share sheet ship shirt shoe shop short shot show sick side sign signal
    silence silver simple since sing singer single sister site six size skin sky sleep slow small smart smile smoke
    snow social society soft software soil soldier solution something sometimes son song songs soon sorry soul sound
    source south space speak special speed spirit sport spring square staff stage stand standard star stars start
    state station status stay steel step still stone stop store storm story strange stranger stream street strong
    student study style subject success sugar summary summer sun support sure surface surprise sweet swim system
    table take tale talk tall target task tea teacher team technology television tell ten term terms test tests text
    thank thanks theory thing things think third thought thousand three through thunder ticket tiger time times title
    today together tomorrow tonight tool tools top total touch tour toward tower town trade train training travel
    treasure tree trip trouble true trust truth try turn twelve twenty twice two type under understand union unit
    unknown until up update usage use user value version very victory video view village visit voice wait walk wall
    want war warning watch water wave way weather web wedding week weekend weight welcome well west wheel white whole
    wide wife wild win wind window wine wing winner winter wise wish within without wolf woman women wonder wood word
    words work worker world worry wrong yard year years yellow yes yesterday yet young youth zero zone
    """.split()
)
"""Such a word counts as a name only with a capital inside a sentence. In lower case, or at the start of a sentence,
it is just the word. Rarer words need no list: a rare word that is a title is a name."""
